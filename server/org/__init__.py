"""The organisation index: what many workspaces published to one PostgreSQL with pgvector, and search over all of it.

`publish` writes one workspace, `searcher` answers. The database holds names, signatures and stems of words beside the
vectors, so whoever may read it learns what the code is about; nothing goes there but what a user publishes.
"""
