/** Watch mode: a file that is saved runs again, and the coverage of the others stays. */
import { appendFileSync } from "node:fs";
import process from "node:process";
import coverage from "@statewright/testing/coverage";
import { createVitest, type Reporter } from "vitest/node";

const tables: string[] = [];
let ended = (): void => undefined;
const reporter: Reporter = coverage();
const heard: Reporter = {
  onInit: () =>
    reporter.onInit?.({
      config: { root: process.cwd() },
      logger: { log: (text: string) => tables.push(text), error: (text: string) => tables.push(text) },
    } as never),
  onTestRunEnd: async (...end) => {
    await reporter.onTestRunEnd?.(...end);
    ended();
  },
};
const next = (): Promise<void> =>
  new Promise((resolve) => {
    ended = resolve;
  });
const vitest = await createVitest("test", { watch: true, reporters: [heard] });
const first = next();
await vitest.start();
await first;
for (const file of ["cheap.test.ts", "dear.test.ts"]) {
  // The watcher needs a moment before it sees changes.
  await new Promise((resolve) => setTimeout(resolve, 500));
  const again = next();
  appendFileSync(file, "\n");
  await again;
}
await vitest.close();
if (tables.length !== 3 || new Set(tables).size !== 1) {
  console.error(tables.join("\n"));
  process.exit(1);
}
process.exit(0);
