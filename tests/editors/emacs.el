;;; Does what a user does, in an Emacs that has what README says; prints what it sees.  -*- lexical-binding: t -*-
(require 'project)
(require 'xref)
(setq lsp-auto-guess-root t lsp-guess-root-without-session t lsp-enable-file-watchers nil lsp-enable-snippet nil
      lsp-warn-no-matched-clients nil)

(defun tell (what value) (princ (format "%s: %s\n" what value)))
(defun wait-for (what done)
  (with-timeout (60 (error "Waited in vain for %s" what))
    (while (not (funcall done)) (accept-process-output nil 0.1))))
(defun apropos-of (query)
  (mapcar #'xref-item-summary (xref-backend-apropos (xref-find-backend) query)))
(defun first-of (query)
  "The first answer, when there is one: a first index takes its time."
  (let (found)
    (wait-for query (lambda () (setq found (apropos-of query))))
    (car found)))

(find-file (expand-file-name "time/cron.py" (getenv "FOLDER")))
(pcase (getenv "WHAT")
  ("command"
   (meaning "split a cron expression")
   (with-current-buffer xref-buffer-name
     (goto-char (point-min))
     (xref-next-line)
     (tell "row" (string-trim (thing-at-point 'line t)))
     (xref-goto-xref))
   (tell "jumped" (format "%s:%d" (buffer-name) (line-number-at-pos))))
  ("eglot"
   (require 'eglot)
   (apply #'eglot--connect (eglot--guess-contact))
   (eglot--maybe-activate-editing-mode)
   (tell "first" (first-of "split a cron expression"))
   (goto-char (point-min))
   (insert "def turn_pancake(pan):\n    \"\"\"Turn a pancake.\"\"\"\n\n")
   (eglot--signal-textDocument/didChange)
   (tell "typed" (first-of "turn a pancake")))
  ("lsp-mode"
   (require 'lsp-mode)
   (lsp)
   (wait-for "the server" (lambda () (eq (xref-find-backend) 'xref-lsp)))
   (tell "first" (first-of "split a cron expression"))))
