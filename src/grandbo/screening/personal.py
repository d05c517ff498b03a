"""Personal data and addresses: validators behind the patterns, so that a number that merely looks like one is none."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable

_DIGITS = re.compile(r"[^0-9]")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_URL_BEFORE = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/]*$", re.IGNORECASE)
IBAN_LENGTHS = range(15, 35)


def is_email(text: str, start: int, _end: int) -> bool:
    """An address, and not the user part of a URL or of a remote such as git's."""
    before = text[max(0, start - 80) : start]
    return not _URL_BEFORE.search(before) and not text[start:_end].lower().startswith("git@")


def is_phone(text: str, start: int, end: int) -> bool:
    """A number written as one dials it: with a country code, or an area code in brackets."""
    digits = _DIGITS.sub("", text[start:end])
    if _DATE.search(text, start, end):
        return False
    return 8 <= len(digits) <= 15 and text[start - 1 : start] not in tuple("0123456789.-+/=_")


def is_card(text: str, start: int, end: int) -> bool:
    """13 to 19 digits whose check digit is right."""
    digits = _DIGITS.sub("", text[start:end])
    if not 13 <= len(digits) <= 19 or len(set(digits)) < 2 or text[start - 1 : start] in tuple(".-_@#/=:"):
        return False
    doubled = (int(digit) * (2 if place % 2 else 1) for place, digit in enumerate(reversed(digits)))
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def is_iban(text: str, start: int, end: int) -> bool:
    """An account number whose check digits are right."""
    plain = text[start:end].replace(" ", "")
    if len(plain) not in IBAN_LENGTHS:
        return False
    return int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1


def is_us_ssn(text: str, start: int, end: int) -> bool:
    """A number that could have been given out."""
    area, group, serial = text[start:end].split("-")
    is_part = text[start - 1 : start] in ("-", ".", "/") or text[end : end + 1] in ("-", "/")
    return not is_part and area not in ("000", "666") and area[0] != "9" and group != "00" and serial != "0000"


def is_ip(text: str, start: int, end: int) -> bool:
    """An address of a machine: not loopback, unspecified or link-local, and not a version of four numbers."""
    if text[start - 1 : start] in ("v", "V", ".", "-") or text[end : end + 1] in ("-",):
        return False
    try:
        address = ipaddress.ip_address(text[start:end])
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified or address.is_link_local)


VALIDATORS: dict[str, Callable[[str, int, int], bool]] = {
    "email": is_email,
    "phone": is_phone,
    "card": is_card,
    "iban": is_iban,
    "us-ssn": is_us_ssn,
    "ip-address": is_ip,
}
