"""How editors talk to us. Knows the protocol, threads and the user's settings; finds and indexes nothing itself.

A message goes through wire.py (is it one?), protocol.py (are its params right?), features.py (which part of the domain
answers?), asking.py (what do all folders answer?) and convert.py (in the client's terms). session.py is one client's
connection, folders.py its workspace folders and the thread that keeps their indexes up to date. All work but that of
the event loop happens in threads; whatever they tell the client goes out from the loop.
"""
