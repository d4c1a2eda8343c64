"""A cache of embeddings that several people share: what one member's machine or CI embedded, no other has to.

It is asked for vectors by the model and the hash of a text, never by the text; it is always optional, and believed
nothing that cannot be checked. Unless the user names one, nothing is sent anywhere.
"""
