"""The process that runs turns, and the rows by which workers say that they live."""
