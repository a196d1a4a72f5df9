/** A yes or a no from the person at the terminal, with a note if they like. */
import { createInterface } from "node:readline/promises";

/** Ask; undefined when the person leaves (Ctrl-C or Ctrl-D) instead of answering. */
export async function askPerson(): Promise<{ readonly ok: boolean; readonly note?: string } | undefined> {
  const gone = new AbortController();
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const leave = (): void => gone.abort();
  terminal.on("SIGINT", leave).on("close", leave);
  try {
    for (;;) {
      const word = (await terminal.question("  yes or no? ", { signal: gone.signal })).trim().toLowerCase();
      const ok = ["y", "yes"].includes(word);
      if (!ok && !["n", "no"].includes(word)) continue;
      const note = (await terminal.question("  a note (or just Enter): ", { signal: gone.signal })).trim();
      return note === "" ? { ok } : { ok, note };
    }
  } catch (error) {
    if (gone.signal.aborted) return undefined;
    throw error;
  } finally {
    terminal.off("close", leave);
    terminal.close();
  }
}
