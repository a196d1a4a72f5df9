/** A letter: messages that somebody has sent to what a branch is doing, until a run takes them into its state. */

/** What it does to a run at work: `steer` comes in at the next boundary, `followUp` when the run would end otherwise. */
export type LetterKind = "steer" | "followUp";

/** A letter as it waits in the inbox of a branch. */
export interface LetterRow {
  /** Given by its sender; unique in its branch while it waits. */
  readonly id: string;
  readonly branch: string;
  readonly kind: LetterKind;
  /** The messages, encoded. */
  readonly messages: string;
  /** When it was sent, in milliseconds since the epoch. */
  readonly at: number;
  /** The run that has taken it in and has not ended, which may yet be taken back; absent while the letter waits. */
  readonly taken?: string | undefined;
}

/** A letter to put into the inbox of a branch. */
export interface LetterWrite extends Omit<LetterRow, "branch" | "taken"> {
  readonly thread: string;
  /** The thread's head branch when absent. */
  readonly branch?: string | undefined;
}
