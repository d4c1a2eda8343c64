"""Builds the model bundles that `server/embed` loads. Runs from a clone, with the `export` extra installed.

The shipped default bundle is rebuilt with two commands:

    python -m export.corpus --out CORPUS                        # download, harvest, assemble: hours of network and CPU
    python -m export.train_student --corpus CORPUS --out server/embed/default

May import `server.parse` and `server.embed.bundle`, nothing else of server.
"""
