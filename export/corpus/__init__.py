"""The training corpus: docstring-code pairs from named, pinned, permissively licensed packages.

manifest.tsv names the packages, excluded.txt what must never be in them (the repositories that the product is judged
on). A run goes download -> harvest -> assemble; each step keeps what is done already and its output is sorted, so the
same manifest gives the same corpus. Nothing of it is committed.
"""
