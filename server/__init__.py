"""meaning-lsp: text in, hits out.

Imports run one way: lsp -> search -> index -> {embed, parse, workspace} -> settings.
"""

__version__ = "0.1.0"
