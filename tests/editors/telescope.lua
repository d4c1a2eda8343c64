-- The live picker, in the real Telescope: type, see rows, type more, choose. Writes what was seen as JSON to $OUT.
local out = {}

local function wait(what, done)
  assert(vim.wait(60000, done, 20), "waited in vain for " .. what)
end

local function rows()
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.bo[buffer].filetype == "TelescopeResults" then
      return vim.tbl_filter(function(line)
        return vim.trim(line) ~= ""
      end, vim.api.nvim_buf_get_lines(buffer, 0, -1, false))
    end
  end
  return {}
end

local function wait_for_row(pattern)
  wait(pattern, function()
    return vim.iter(rows()):any(function(row)
      return row:find(pattern, 1, true)
    end)
  end)
end

local ok, failure = xpcall(function()
  vim.cmd.edit("time/cron.py")
  wait("the client", function()
    return #vim.lsp.get_clients({ name = "meaning", bufnr = 0 }) == 1
  end)
  local client = vim.lsp.get_clients({ name = "meaning" })[1]
  assert(client:request_sync("meaning/reindex", vim.empty_dict(), 60000))

  vim.cmd("Meaning split a cron expression")
  wait_for_row("parse_cron")
  local state = require("telescope.actions.state")
  local picker = state.get_current_picker(vim.api.nvim_get_current_buf())
  wait("the first row", function()
    return state.get_selected_entry() and state.get_selected_entry().value.name == "parse_cron"
  end)
  out.first = state.get_selected_entry().display

  picker:set_prompt("lang:go cookies of a request")
  wait("the rows to follow", function()
    local entry = state.get_selected_entry()
    return entry and entry.value.name == "ParseCookies"
  end)
  picker:set_prompt("lang:")  -- half a filter is no failure
  wait("no rows", function()
    return #rows() == 0
  end)
  picker:set_prompt("where is a failed upload sent again")
  wait("the last row", function()
    local entry = state.get_selected_entry()
    return entry and entry.value.name == "retry"
  end)
  require("telescope.actions").select_default(picker.prompt_bufnr)
  wait("the jump", function()
    return vim.fs.basename(vim.api.nvim_buf_get_name(0)) == "upload.py"
  end)
  out.cursor = vim.api.nvim_win_get_cursor(0)
  out.word = vim.fn.expand("<cword>")

  -- The extension's own name.
  vim.cmd("Telescope meaning")
  wait("its prompt", function()
    return vim.bo.filetype == "TelescopePrompt"
  end)
end, debug.traceback)

out.failure = not ok and tostring(failure) or nil
vim.fn.writefile({ vim.json.encode(out) }, vim.env.OUT)
vim.cmd("qall!")
