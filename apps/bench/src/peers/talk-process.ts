/** Process of one framework: runs a conversation per request and returns its measurement. */
import process from "node:process";
import { createSdkModel } from "./sdk-model.ts";

interface Program {
  /** Runs a conversation. Returns the number of model calls. */
  readonly talk: (turns: number, file: string | undefined, createModel: typeof createSdkModel) => Promise<number>;
  /** Counts the messages of the last conversation in the file; for programs that save. */
  readonly saved?: (file: string) => Promise<number>;
}

interface TalkRequest {
  readonly turns: number;
  readonly file?: string;
}

const { talk, saved } = (await import(process.argv[2] ?? "")) as Program;
let isChecked = false;

process.on("message", async ({ turns, file }: TalkRequest) => {
  const cpu = process.cpuUsage();
  const wall = performance.now();
  const answers = await talk(turns, file, createSdkModel);
  const { user, system } = process.cpuUsage(cpu);
  const sample = { cpuUs: user + system, wallUs: (performance.now() - wall) * 1_000 };
  if (answers < turns) throw new Error(`expected at least ${turns} model calls, got ${answers}`);
  if (file !== undefined && !isChecked) await checkSaved(file, turns);
  process.send?.(sample);
});

/**
 * Checks that the program saved the whole conversation: the input, a call and its result per turn, and the final
 * reply. Unsaved work would be less work.
 */
async function checkSaved(file: string, turns: number): Promise<void> {
  const messages = await saved?.(file);
  if (messages !== 2 * turns + 2) throw new Error(`expected ${2 * turns + 2} saved messages, got ${messages}`);
  isChecked = true;
}
