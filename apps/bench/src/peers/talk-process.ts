/** The process of one framework: has a conversation of so many turns when it is told to, and says what that took. */
import process from "node:process";

const { talk } = (await import(process.argv[2] ?? "")) as { readonly talk: (turns: number) => Promise<number> };

process.on("message", async (turns: number) => {
  const cpu = process.cpuUsage();
  const wall = performance.now();
  const answers = await talk(turns);
  if (answers < turns) throw new Error(`the model was asked ${answers} times in ${turns} turns`);
  const { user, system } = process.cpuUsage(cpu);
  process.send?.({ cpuUs: user + system, wallUs: (performance.now() - wall) * 1_000 });
});
