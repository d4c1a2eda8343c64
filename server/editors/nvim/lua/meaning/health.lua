-- :checkhealth meaning
local M = {}

local function check_program()
  local config = vim.lsp.config.meaning
  local program = type(config.cmd) == "table" and config.cmd[1]
  if not program or vim.fn.executable(program) == 1 then
    return vim.health.ok(("the server is %s"):format(program and vim.fn.exepath(program) or "a function of yours"))
  end
  vim.health.error(
    ("%s is not executable"):format(program),
    { "pipx install 'meaning-lsp[cpu]'", 'or say where it is: vim.lsp.config("meaning", { cmd = { "/path/to/meaning-lsp" } })' }
  )
end

local function check_folder(folder)
  local line = ("%s: %s, %d files, %d units, %d files pending"):format(
    vim.uri_to_fname(folder.uri), folder.state, folder.files, folder.units, folder.pending)
  if folder.problem then
    vim.health.error(line .. ": " .. folder.problem)
  else
    vim.health.ok(line)
  end
end

local function check_client(client)
  local response, problem = client:request_sync("meaning/status", vim.empty_dict(), 5000)
  if not response or response.err then
    return vim.health.error(("%s: no answer (%s)"):format(client.root_dir, problem or response.err.message))
  end
  local status = response.result
  if status.problem then
    vim.health.error(status.problem)
  end
  vim.tbl_map(check_folder, status.folders)
end

function M.check()
  vim.health.start("meaning")
  check_program()
  if not vim.lsp.is_enabled("meaning") then
    vim.health.warn("not enabled", { 'in init.lua: vim.lsp.enable("meaning")' })
  end
  local clients = vim.lsp.get_clients({ name = "meaning" })
  if #clients == 0 then
    vim.health.info("no server runs: open a file of a project (it has to have one of the root_markers)")
  end
  vim.tbl_map(check_client, clients)
end

return M
