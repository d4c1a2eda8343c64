-- Types into the window of `:Meaning`, as a user does; writes what was seen as JSON to $OUT.
local out = {}

-- Keys are read while a test waits for its next step: each step is a key and what it leads to.
local function press(keys)
  vim.api.nvim_feedkeys(vim.keycode(keys), "t", false)
end

local function windows()
  return #vim.api.nvim_list_wins()
end

local function rows()
  local list = vim.iter(vim.api.nvim_list_wins()):find(function(each)
    return vim.api.nvim_win_get_config(each).relative ~= "" and each ~= vim.api.nvim_get_current_win()
  end)
  return list and vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(list), 0, -1, false) or {}
end

local function file()
  return vim.fs.basename(vim.api.nvim_buf_get_name(0))
end

local function first_row(text)
  return function()
    return (rows()[1] or ""):find(text, 1, true)
  end
end

local steps = {
  { "<Cmd>edit net/upload.py<CR><Cmd>Meaning<CR>", function() return windows() == 3 end },
  { "split a cron", first_row("parse_cron"), function() out.rows = rows() end },
  { "<C-u>lang:klingon x", first_row("klingon"), function() out.mistake = rows() end },
  { "<CR><Esc>", function() return windows() == 1 and vim.api.nvim_get_mode().mode == "n" end,
    function() out.left = { file(), vim.api.nvim_get_mode().mode, windows() } end },
  { "<Cmd>Meaning<CR>path:time/ cron fields", first_row("cron.py") },
  { "<Up><Down><Down><Down><Down><Up>", function() return true end },
  { "<C-u>when is a schedule due", first_row("next_run") },
  { "<CR>", function() return file() == "cron.py" and windows() == 1 end,
    function() out.word, out.line = vim.fn.expand("<cword>"), vim.fn.line(".") end },
  { "<Cmd>Meaning<CR>cookies of a request", first_row("ParseCookies") },
  { "<C-q>", function() return vim.bo.buftype == "quickfix" end, function()
    local list = vim.fn.getqflist({ title = 0, items = 0 })
    out.kept = { title = list.title, first = vim.fs.basename(vim.api.nvim_buf_get_name(list.items[1].bufnr)) }
  end },
}

local function finish(failure)
  out.failure = failure
  vim.fn.writefile({ vim.json.encode(out) }, vim.env.OUT)
  vim.cmd("qall!")
end

local LOOK_MS, LOOKS = 50, 600

local function step(number, looks)
  local keys, done, note = unpack(steps[number] or {})
  if not keys then
    return finish(nil)
  end
  local ok, seen = pcall(done)
  if ok and seen and looks > 0 then
    if note then
      note()
    end
    press((steps[number + 1] or { "" })[1])
    return vim.defer_fn(function() step(number + 1, 0) end, LOOK_MS)
  end
  if looks > LOOKS then
    return finish(("waited in vain after %s: %s"):format(keys, vim.inspect({ rows(), windows(), vim.api.nvim_get_mode() })))
  end
  vim.defer_fn(function() step(number, looks + 1) end, LOOK_MS)
end

vim.schedule(function()
  press(steps[1][1])
  step(1, 0)
end)
