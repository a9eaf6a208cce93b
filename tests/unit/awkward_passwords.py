"""Passwords that break naive redaction, and the check that no text has one."""

import json

import pytest

SECRETS = [
    *("hu@sh-4711", "hu:sh-4711", "hu/sh-4711", "hu?sh-4711", "hu%sh-4711", "hu#sh-4711", "hu sh-4711"),
    *("hu'sh-4711", 'hu"sh-4711', "hüsh-4711", "\U0001f600sh-4711", "hu\x01sh-4711", "hu\nsh-4711", "hu\tsh-4711"),
    *("${env:HUSH_4711}", "__:ENC:08:hush-4711", "amqp://joe:hush@h-4711/", "{hush}-4711", "%s-hush-4711"),
    "hush" * 5000,
]
every_secret = pytest.mark.parametrize("secret", SECRETS, ids=range(len(SECRETS)))


def shown(error):
    while error is not None:
        yield from (str(error), repr(error), *getattr(error, "__notes__", ()))
        error = error.__cause__ or error.__context__


def assert_unseen(secret, *texts):
    forms = {secret, repr(secret)[1:-1], str(secret.encode())[2:-1], json.dumps(secret)[1:-1]}
    assert not [text for text in texts for form in forms if form in text]
