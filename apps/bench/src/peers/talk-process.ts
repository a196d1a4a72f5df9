/** The process of one framework: has a conversation of so many turns when it is told to, and says what that took. */
import process from "node:process";

type Talk = (turns: number, file?: string) => Promise<number>;

const { talk } = (await import(process.argv[2] ?? "")) as { readonly talk: Talk };

process.on("message", async ({ turns, file }: { readonly turns: number; readonly file?: string }) => {
  const cpu = process.cpuUsage();
  const wall = performance.now();
  const answers = await talk(turns, file);
  if (answers < turns) throw new Error(`the model was asked ${answers} times in ${turns} turns`);
  const { user, system } = process.cpuUsage(cpu);
  process.send?.({ cpuUs: user + system, wallUs: (performance.now() - wall) * 1_000 });
});
