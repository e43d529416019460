#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes a C++ header that holds the text of the files given: embed.py OUTPUT FILE..."""
import os
import sys

with open(sys.argv[1], "w", encoding="utf-8") as out:
    out.write("#pragma once\n#include <array>\n#include <utility>\n"
              "namespace nfsrdma::results {\n"
              f"inline constexpr std::array<std::pair<const char*, const char*>, "
              f"{len(sys.argv) - 2}> kPublishedData{{{{\n")
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as source:
            text = source.read()
        assert ')embed"' not in text
        out.write(f'{{"{os.path.basename(path)}", R"embed({text})embed"}},\n')
    out.write("}};\n}  // namespace nfsrdma::results\n")
