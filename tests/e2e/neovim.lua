-- What README tells a user of Neovim to write, then the questions of the test. Writes its findings as JSON to $OUT.
local out = {}

local ok, failure = pcall(function()
  vim.lsp.config("meaning", {
    cmd = vim.json.decode(vim.env.SERVER),
    cmd_cwd = vim.env.HOUSE,
    root_dir = vim.env.FOLDER,
    filetypes = { "python" },
  })
  vim.lsp.enable("meaning")
  vim.cmd.edit(vim.fs.joinpath(vim.env.FOLDER, "json", "decoder.py"))
  vim.bo.filetype = "python"

  assert(vim.wait(30000, function()
    return #vim.lsp.get_clients({ name = "meaning" }) == 1 and vim.lsp.get_clients({ name = "meaning" })[1].initialized
  end), "no client")
  local client = vim.lsp.get_clients({ name = "meaning" })[1]
  out.encoding = client.offset_encoding

  local function ask(method, params)
    local response = assert(client:request_sync(method, params, 60000, 0), method)
    return response.err and { error = response.err } or response.result
  end

  out.reindex = ask("meaning/reindex", vim.empty_dict())
  out.search = ask("meaning/search", { query = "escape characters in a url" })
  out.symbols = ask("workspace/symbol", { query = "parse cookies of a request" })
  out.similar = ask("meaning/similar", vim.lsp.util.make_position_params(0, client.offset_encoding))
  out.wrong = ask("meaning/search", { limit = 3 })

  -- Jump to the first hit, as a user does.
  local item = out.search.items[1]
  vim.lsp.util.show_document(
    { uri = item.location.uri, range = item.selectionRange }, client.offset_encoding, { focus = true })
  out.word = vim.fn.expand("<cword>")

  vim.api.nvim_buf_set_lines(0, 0, 0, false, { "# a line that is typed: 😀" })
  out.after_typing = ask("meaning/search", { query = "urlopen" })

  client:stop()
  assert(vim.wait(10000, function() return client:is_stopped() end), "the server does not stop")
end)

out.failure = not ok and tostring(failure) or nil
vim.fn.writefile({ vim.json.encode(out) }, vim.env.OUT)
vim.cmd("qall!")
