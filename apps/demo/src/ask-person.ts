/** Yes-or-no prompt at the terminal, with an optional note. */
import { createInterface } from "node:readline/promises";

/** Prompts for an answer. Returns undefined on Ctrl-C or Ctrl-D. */
export async function askPerson(): Promise<{ readonly ok: boolean; readonly note?: string } | undefined> {
  const abortController = new AbortController();
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const abort = (): void => abortController.abort();
  terminal.on("SIGINT", abort).on("close", abort);
  try {
    for (;;) {
      const word = (await terminal.question("  yes or no? ", { signal: abortController.signal })).trim().toLowerCase();
      const ok = ["y", "yes"].includes(word);
      if (!ok && !["n", "no"].includes(word)) continue;
      const note = (await terminal.question("  a note (or just Enter): ", { signal: abortController.signal })).trim();
      return note === "" ? { ok } : { ok, note };
    }
  } catch (error) {
    if (abortController.signal.aborted) return undefined;
    throw error;
  } finally {
    terminal.off("close", abort);
    terminal.close();
  }
}
