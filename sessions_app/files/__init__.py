"""Files of a vault and of messages, as the server touches them: by directory handles, through no link."""
