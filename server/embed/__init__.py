"""Text -> vectors. Knows bundles, tokens and onnxruntime; not which model a bundle holds, nor whose text it is.

`Bundle.load` checks a folder of data, `Embedder` runs it: code in parts, queries whole.
"""
