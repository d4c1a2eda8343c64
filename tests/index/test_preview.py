"""A row says something of what it leads to."""

from __future__ import annotations

import pytest

from server.index.preview import preview_line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("/**\n * Reads cookies.\n */\n", "* Reads cookies."),
        ("#ifdef DEBUG\nint level = 3;\n#endif\n", "int level = 3;"),
        ("#!/usr/bin/env bash\nset -e\n", "set -e"),
        ("// Copyright 2020 Somebody\n// All rights reserved.\n\npackage cookies\n", "package cookies"),
        ("/*\n  Licensed to all.\n  As is.\n*/\nimport x from 'x'\n", "import x from 'x'"),
        ("# SPDX-License-Identifier: MIT\n# as is\nimport os\n", "import os"),
        ("/* eslint-disable no-console */\n'use strict';\nconst a = 1\n", "const a = 1"),
        ("<?php\nnamespace A;\n", "namespace A;"),
        ("#include <stdio.h>\n", "#include <stdio.h>"),
        ("# What it is\n\nA tool.\n", "# What it is"),
        ("\n  {\n  }\n", "{"),
        ("// MIT License\n", "// MIT License"),
        ("", ""),
    ],
)
def test_the_preview_is_the_first_line_that_says_something(text: str, line: str) -> None:
    assert preview_line(text) == line
