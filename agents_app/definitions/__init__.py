"""Agents as people write them: markdown files with front matter in `Agents/` and `.agents/` of a vault.

files.py        what lies there, by directory handles
front_matter.py the text of one file, as values with their lines
schema.py       what a file may say, and in which words it is told what is wrong
doubts.py       what in it counts for nothing, and was most likely meant
definition.py   what the server made of one file
rights.py       what a file says about rights, and how two of these meet
accepting.py    what of it counts: the rights that a person accepted
agents.py       the agents of a workspace
editing.py      the page and the API write a file

"""
