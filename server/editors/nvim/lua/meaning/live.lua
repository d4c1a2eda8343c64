-- A window that answers while you type: the question above, its hits below.
--
-- <Down>/<C-n>, <Up>/<C-p>  another hit     <CR>   jump to it
-- <Esc>/<C-c>  leave                        <C-q>  put all of them into the quickfix list
local client = require("meaning.client")

local TITLE = " Find code by meaning "
local PAUSE_MS = 50 -- after the last key: who types fast asks no question in between
local LOOK_AGAIN_MS = 700 -- while an index is built, the same question finds more and more
local LIMIT = 50
local WIDEST = 120

local Live = {}
Live.__index = Live

local function window(focus, row, height, title)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.bo[buffer].bufhidden = "wipe"
  local width = math.min(math.max(vim.o.columns - 4, 1), WIDEST)
  local col = math.max(math.floor((vim.o.columns - width) / 2) - 1, 0)
  return vim.api.nvim_open_win(buffer, focus, {
    relative = "editor", style = "minimal", border = "rounded", title = title,
    row = row, col = col, width = width, height = height,
  }), buffer
end

function Live:question()
  return vim.api.nvim_buf_get_lines(self.prompt, 0, 1, false)[1]
end

function Live:show(hits, word, missing)
  self.hits = hits
  vim.api.nvim_buf_set_lines(self.list, 0, -1, false, #hits > 0 and vim.tbl_map(self.meaning.label, hits) or { word })
  vim.api.nvim_win_set_cursor(self.list_window, { 1, 0 })
  vim.api.nvim_win_set_config(self.prompt_window, { title = TITLE .. missing })
end

function Live:row()
  return vim.api.nvim_win_get_cursor(self.list_window)[1]
end

function Live:take_back()
  self.timer:stop()
  if self.asked then
    self.server:cancel_request(self.asked)
    self.asked = nil
  end
end

function Live:ask_in(milliseconds)
  self.timer:start(milliseconds, 0, vim.schedule_wrap(function()
    if self.is_open and vim.trim(self:question()) ~= "" then
      self:ask(self:question())
    end
  end))
end

function Live:ask(question)
  local _, id = self.server:request("meaning/search", { query = question, limit = LIMIT }, function(problem, answer)
    if self.is_open and question == self:question() then
      self.asked = nil
      self:answered(problem, answer or { items = {}, pending = 0 })
    end
  end)
  self.asked = id
end

function Live:answered(problem, answer)
  if self:row() == 1 then -- Who looks through the hits keeps them.
    self:show(answer.items, problem and problem.message or "nothing found", client.pending(answer))
    if answer.pending > 0 then
      self:ask_in(LOOK_AGAIN_MS)
    end
  end
end

function Live:close()
  if self.is_open then
    self.is_open = false
    self:take_back()
    vim.cmd.stopinsert()
    pcall(vim.api.nvim_win_close, self.list_window, true)
    pcall(vim.api.nvim_win_close, self.prompt_window, true)
  end
end

function Live:move(step)
  local row = math.min(math.max(self:row() + step, 1), math.max(#self.hits, 1))
  vim.api.nvim_win_set_cursor(self.list_window, { row, 0 })
end

-- Leaves, and does something with the hits, if there are any.
function Live:take(act)
  local hit, question = self.hits[self:row()], self:question()
  if hit then
    self:close()
    act(hit, question)
  end
end

function Live:jump()
  self:take(function(hit)
    self.meaning.jump(hit, self.server.offset_encoding)
  end)
end

function Live:keep()
  self:take(function(_, question)
    self.meaning.to_quickfix("Meaning: " .. question, self.hits, self.server.offset_encoding)
  end)
end

function Live:listen()
  local function on(names, act, ...)
    local given = { ... }
    for _, name in ipairs(names) do
      vim.keymap.set({ "i", "n" }, name, function() act(self, unpack(given)) end, { buffer = self.prompt, nowait = true })
    end
  end
  on({ "<Down>", "<C-n>" }, self.move, 1)
  on({ "<Up>", "<C-p>" }, self.move, -1)
  on({ "<CR>" }, self.jump)
  on({ "<C-q>" }, self.keep)
  on({ "<Esc>", "<C-c>" }, self.close)
  vim.api.nvim_create_autocmd({ "TextChanged", "TextChangedI" }, { buffer = self.prompt, callback = function()
    self:take_back()
    vim.api.nvim_win_set_cursor(self.list_window, { 1, 0 })
    self:ask_in(PAUSE_MS)
  end })
  vim.api.nvim_create_autocmd("WinLeave", { buffer = self.prompt, callback = vim.schedule_wrap(function() self:close() end) })
end

-- `meaning`: how a hit looks, and what is done with it, which is init.lua's.
return function(meaning)
  local server = client.get()
  if server then
    local live = setmetatable({ meaning = meaning, server = server, timer = vim.uv.new_timer(), hits = {}, is_open = true }, Live)
    live.list_window, live.list = window(false, 4, math.max(vim.o.lines - 9, 1))
    live.prompt_window, live.prompt = window(true, 1, 1, TITLE)
    vim.wo[live.list_window].cursorline = true
    live:listen()
    vim.cmd.startinsert()
  end
end
