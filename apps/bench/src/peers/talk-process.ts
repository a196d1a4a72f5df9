/** The process of one framework: has a conversation of so many turns when it is told to, and says what that took. */
import process from "node:process";

interface Program {
  /** Gives how often the model was asked. */
  readonly talk: (turns: number, file?: string) => Promise<number>;
  /** Messages of the last conversation, read from its file; of a program that saves. */
  readonly saved?: (file: string) => Promise<number>;
}

interface Question {
  readonly turns: number;
  readonly file?: string;
}

const { talk, saved } = (await import(process.argv[2] ?? "")) as Program;
let isLookedAt = false;

process.on("message", async ({ turns, file }: Question) => {
  const cpu = process.cpuUsage();
  const wall = performance.now();
  const answers = await talk(turns, file);
  const { user, system } = process.cpuUsage(cpu);
  const sample = { cpuUs: user + system, wallUs: (performance.now() - wall) * 1_000 };
  if (answers < turns) throw new Error(`the model was asked ${answers} times in ${turns} turns`);
  if (file !== undefined && !isLookedAt) await lookAt(file, turns);
  process.send?.(sample);
});

/** What was not saved was not the same work: the question, a call and its answer for each turn, and the end. */
async function lookAt(file: string, turns: number): Promise<void> {
  const messages = await saved?.(file);
  if (messages !== 2 * turns + 2) throw new Error(`${messages} messages were saved of ${2 * turns + 2}`);
  isLookedAt = true;
}
