"""Embeds the code of thousands of repositories on Ray: into Parquet files, and into a shared cache if one is named.

A repository is cut into chunks of some files, and a chunk is named by a hash of all that its vectors come from: the
model, the parser and the files' paths and contents. A chunk's Parquet file is written at once when it is whole, so that
what is there was done, by whichever run, and is not done again.
"""
