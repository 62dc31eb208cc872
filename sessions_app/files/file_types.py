"""What a file is, by its first bytes. What its sender says of it, and its name, are only claims."""

from sessions_app.models.attachment import ContentType

_WEBP = slice(8, 12)  # after `RIFF` and a length
_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", ContentType.PNG),
    (b"\xff\xd8\xff", ContentType.JPEG),
    (b"GIF87a", ContentType.GIF),
    (b"GIF89a", ContentType.GIF),
    (b"%PDF-", ContentType.PDF),
)
_PROGRAMS = (
    b"\x7fELF",
    b"#!",
    b"\xca\xfe\xba\xbe",  # a Java class, and a Mach-O for several processors
    b"\xfe\xed\xfa\xce",  # Mach-O, in both orders and widths
    b"\xfe\xed\xfa\xcf",
    b"\xce\xfa\xed\xfe",
    b"\xcf\xfa\xed\xfe",
    b"\0asm",
    b"dex\n0",
)
# What a computer or a telephone runs or installs when somebody opens it. `.js` and `.py` are not among them:
# people share them as text, and they come to the agent as text. A script that names its interpreter in its
# first line can be run as it is, whatever it is called, and is known by its content.
_RUN_WHEN_OPENED = (
    *(".exe", ".msi", ".bat", ".cmd", ".com", ".scr", ".pif", ".cpl", ".lnk", ".hta"),
    *(".ps1", ".vbs", ".vbe", ".wsf", ".jse", ".reg", ".sh", ".command", ".app", ".dmg", ".pkg"),
    *(".deb", ".rpm", ".appimage", ".jar", ".apk", ".dll", ".so", ".dylib", ".sys", ".desktop"),
)


def type_of(content: bytes) -> ContentType:
    if content.startswith(b"RIFF") and content[_WEBP] == b"WEBP":
        return ContentType.WEBP
    for beginning, found in _BEGINNINGS:
        if content.startswith(beginning):
            return found
    return ContentType.TEXT if _is_text(content) else ContentType.OTHER


def is_program(name: str, content: bytes) -> bool:
    """Whether it is made to be run, by what it holds or by what opening it would do."""
    return (
        content.startswith(_PROGRAMS)
        or (content.startswith(b"MZ") and not _is_text(content))  # a note may begin with these letters
        or name.lower().endswith(_RUN_WHEN_OPENED)
    )


def _is_text(content: bytes) -> bool:
    if b"\0" in content:
        return False
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
