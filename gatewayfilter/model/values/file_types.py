"""File types that a policy can block: their groups, file name extensions and media types."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

FILE_GROUPS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "programs": (
            "exe", "dll", "com", "scr", "cpl", "msi", "msix", "appx", "bat", "cmd", "ps1", "vbs", "wsf", "hta", "lnk",
            "apk", "xapk", "ipa", "dmg", "pkg", "deb", "rpm", "appimage", "elf", "macho", "sh", "jar", "crx", "xpi", "dex",
        ),
        "archives": (
            "zip", "rar", "7z", "tar", "gz", "tgz", "bz2", "xz", "zst", "cab", "iso", "img",
        ),
        "video": (
            "mp4", "m4v", "mov", "mkv", "webm", "avi", "wmv", "flv", "mpg", "mpeg", "3gp", "ogv", "ts", "m3u8", "mpd",
        ),
        "audio": (
            "mp3", "m4a", "aac", "ogg", "oga", "opus", "wav", "flac", "wma",
        ),
        "documents": (
            "pdf", "doc", "docx", "docm", "xls", "xlsx", "xlsm", "ppt", "pptx", "pptm", "odt", "ods", "odp", "rtf", "epub",
        ),
        "torrents": (
            "torrent",
        ),
    }
)  # fmt: skip
"""Group → the extensions that belong to it. A program of Unix or macOS without an extension is `elf` or `macho`."""

FILE_TYPES: Final = frozenset(name for names in FILE_GROUPS.values() for name in names)

MEDIA_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        f"{kind}/{subtype}": name
        for kind, subtypes in (
            (
                "application",
                {
                    "x-msdownload": "exe", "x-msdos-program": "exe", "x-dosexec": "exe", "x-exe": "exe",
                    "vnd.microsoft.portable-executable": "exe", "x-msi": "msi", "x-ms-installer": "msi",
                    "msix": "msix", "appx": "appx", "x-bat": "bat", "hta": "hta", "x-ms-shortcut": "lnk",
                    "vnd.android.package-archive": "apk", "x-apple-diskimage": "dmg", "x-newton-compatible-pkg": "pkg",
                    "vnd.debian.binary-package": "deb", "x-debian-package": "deb", "x-deb": "deb",
                    "x-rpm": "rpm", "x-redhat-package-manager": "rpm", "x-executable": "elf", "x-elf": "elf",
                    "x-sharedlib": "elf", "x-mach-binary": "macho", "x-sh": "sh", "x-shellscript": "sh",
                    "java-archive": "jar", "x-java-archive": "jar", "x-chrome-extension": "crx", "x-xpinstall": "xpi",
                    "zip": "zip", "x-zip": "zip", "x-zip-compressed": "zip", "vnd.rar": "rar", "x-rar": "rar",
                    "x-rar-compressed": "rar", "x-7z-compressed": "7z", "x-tar": "tar", "x-gtar": "tar", "gzip": "gz",
                    "x-gzip": "gz", "x-bzip2": "bz2", "x-xz": "xz", "zstd": "zst", "vnd.ms-cab-compressed": "cab",
                    "x-iso9660-image": "iso", "x-raw-disk-image": "img", "x-bittorrent": "torrent",
                    "vnd.apple.mpegurl": "m3u8", "x-mpegurl": "m3u8", "dash+xml": "mpd",
                    "pdf": "pdf", "x-pdf": "pdf", "msword": "doc", "vnd.ms-excel": "xls", "vnd.ms-powerpoint": "ppt",
                    "vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
                    "vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
                    "vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
                    "vnd.oasis.opendocument.text": "odt", "vnd.oasis.opendocument.spreadsheet": "ods",
                    "vnd.oasis.opendocument.presentation": "odp", "rtf": "rtf", "epub+zip": "epub",
                },
            ),
            (
                "video",
                {
                    "mp4": "mp4", "x-m4v": "m4v", "quicktime": "mov", "x-matroska": "mkv", "webm": "webm",
                    "x-msvideo": "avi", "avi": "avi", "x-ms-wmv": "wmv", "x-flv": "flv", "mpeg": "mpeg", "3gpp": "3gp",
                    "ogg": "ogv", "mp2t": "ts",
                },
            ),
            (
                "audio",
                {
                    "mpeg": "mp3", "mp3": "mp3", "mp4": "m4a", "x-m4a": "m4a", "aac": "aac", "ogg": "ogg", "opus": "opus",
                    "wav": "wav", "x-wav": "wav", "flac": "flac", "x-flac": "flac", "x-ms-wma": "wma",
                },
            ),
        )
        for subtype, name in subtypes.items()
    }
)  # fmt: skip
"""Media type → file type, of the registered types (IANA) and those in common use."""


def expanded_types(names: frozenset[str]) -> frozenset[str]:
    """Returns file types with the members of groups in place of the groups."""
    return frozenset(member for name in names for member in FILE_GROUPS.get(name, (name,)))
