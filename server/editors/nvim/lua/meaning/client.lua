-- Which server is asked, and how.
local M = {}

local NAME = "meaning"
local START_MS = 10000

function M.tell(message, level)
  vim.notify("meaning: " .. message, level or vim.log.levels.INFO)
end

-- The server of the buffer's project; else of the one that Neovim stands in; else any that runs.
local function running()
  local here = vim.lsp.get_clients({ name = NAME, bufnr = 0 })[1]
  if here then
    return here
  end
  local all = vim.lsp.get_clients({ name = NAME })
  local cwd = vim.uv.fs_realpath(vim.fn.getcwd())
  for _, client in ipairs(all) do
    local root = client.root_dir and vim.uv.fs_realpath(client.root_dir)
    if root and cwd and vim.fs.relpath(root, cwd) then
      return client
    end
  end
  return all[1]
end

-- A server for the project that Neovim stands in, where no file of it is open yet.
local function started()
  local config = vim.deepcopy(vim.lsp.config[NAME])
  config.root_dir = vim.fs.root(vim.fn.getcwd(), config.root_markers)
  if not config.root_dir then
    M.tell("no project here: open a file of one, or :cd into one", vim.log.levels.WARN)
    return nil
  end
  local id = vim.lsp.start(config, { attach = false })
  return id and vim.lsp.get_client_by_id(id)
end

-- The server to ask; nil, and the user knows why, if there is none.
function M.get()
  local client = running() or started()
  if not client then
    return nil
  end
  local ready = vim.wait(START_MS, function()
    return client.initialized or client:is_stopped()
  end, 20)
  if not ready or client:is_stopped() then
    M.tell("the server does not start; see :checkhealth meaning", vim.log.levels.ERROR)
    return nil
  end
  return client
end

-- What an answer leaves out; empty if nothing.
function M.pending(answer)
  return answer.pending == 0 and "" or (" (%d files are not indexed yet)"):format(answer.pending)
end

-- Calls on_answer(answer, encoding), or tells what was wrong. A question that a newer one follows is dropped.
local asked = 0
function M.ask(client, method, params, on_answer)
  asked = asked + 1
  local this = asked
  client:request(method, params, function(problem, answer)
    if this ~= asked then
      return
    end
    if problem then
      return M.tell(problem.message, vim.log.levels.ERROR)
    end
    on_answer(answer, client.offset_encoding)
  end)
end

return M
