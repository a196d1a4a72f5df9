/** The inbox of a branch as the store in memory keeps it: a list that each write replaces. */
import type { LetterRow } from "../inbox-message.ts";
import type { Commit } from "../store.ts";

/** Those that no run has taken in. */
export function waitingIn(letters: readonly LetterRow[]): readonly LetterRow[] {
  return letters.filter(({ taken }) => taken === undefined);
}

/** What a write leaves of an inbox: its run takes letters in, gives back what it took, or ends and has them no more. */
export function lettersAfter(letters: readonly LetterRow[], commit: Commit): readonly LetterRow[] {
  const { taken = [], givenBack, checkpoint, run } = commit;
  const by = checkpoint?.row.run;
  const ended = run?.status === "done" || run?.status === "cancelled" ? run.id : undefined;
  let left = letters;
  // One that was sent again under its id, and taken again, is one letter.
  if (taken.length > 0 && by !== undefined)
    left = left
      .filter((letter) => letter.taken !== by || !taken.includes(letter.id))
      .map((letter) => (letter.taken === undefined && taken.includes(letter.id) ? { ...letter, taken: by } : letter));
  if (givenBack !== undefined) left = withGivenBack(left, givenBack);
  return ended === undefined ? left : left.filter((letter) => letter.taken !== ended);
}

function withGivenBack(letters: readonly LetterRow[], run: string): readonly LetterRow[] {
  const waiting = new Set(waitingIn(letters).map(({ id }) => id));
  return letters.flatMap((letter): readonly LetterRow[] => {
    if (letter.taken !== run) return [letter];
    const { taken: _, ...again } = letter;
    return waiting.has(letter.id) ? [] : [again];
  });
}
