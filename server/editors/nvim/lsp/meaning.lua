-- The server's configuration, found by vim.lsp.config: `vim.lsp.enable("meaning")` is all that is left to say.
-- No `filetypes`: it serves files of every kind.
return {
  cmd = { "meaning-lsp" },
  root_markers = { ".git", ".hg", ".jj", ".svn" },
  workspace_required = true, -- a file without a project is nothing to search in
}
