/** Questions of somebody who types: asked after a short pause, and only the answer to the last one counts. */

export interface Replies<Question, Answer> {
  ask: (question: Question, signal: AbortSignal) => Promise<Answer>;
  answered: (answer: Answer, question: Question) => void;
  failed: (error: unknown, question: Question) => void;
}

export class Latest<Question, Answer> {
  private running: AbortController | undefined;

  /** `pause` is in milliseconds: keys that come faster than that ask no question. */
  constructor(
    private readonly replies: Replies<Question, Answer>,
    private readonly pause: number,
  ) {}

  /** Ask this instead of what was asked before. */
  ask(question: Question): void {
    this.cancel();
    const controller = (this.running = new AbortController());
    const timer = setTimeout(() => void this.run(question, controller), this.pause);
    controller.signal.addEventListener("abort", () => clearTimeout(timer));
  }

  /** Nobody waits for an answer any more. */
  cancel(): void {
    this.running?.abort();
    this.running = undefined;
  }

  private async run(question: Question, controller: AbortController): Promise<void> {
    const { signal } = controller;
    try {
      const answer = await this.replies.ask(question, signal);
      if (!signal.aborted) {
        this.replies.answered(answer, question);
      }
    } catch (error) {
      if (!signal.aborted) {
        this.replies.failed(error, question);
      }
    }
  }
}
