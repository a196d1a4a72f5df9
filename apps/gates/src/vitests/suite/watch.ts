/** Watch mode: a saved file runs again, and the coverage of the other files is unchanged. */
import { appendFileSync } from "node:fs";
import process from "node:process";
import coverage from "@statewright/testing/coverage";
import { createVitest, type Reporter } from "vitest/node";

const tables: string[] = [];
let onEnd = (): void => undefined;
const reporter: Reporter = coverage();
const observed: Reporter = {
  onInit: () =>
    reporter.onInit?.({
      config: { root: process.cwd() },
      logger: { log: (text: string) => tables.push(text), error: (text: string) => tables.push(text) },
    } as never),
  onTestRunEnd: async (...end) => {
    await reporter.onTestRunEnd?.(...end);
    onEnd();
  },
};
const waitForRun = (): Promise<void> =>
  new Promise((resolve) => {
    onEnd = resolve;
  });
const vitest = await createVitest("test", { watch: true, reporters: [observed] });
const firstRun = waitForRun();
await vitest.start();
await firstRun;
for (const file of ["cheap.test.ts", "dear.test.ts"]) {
  // The watcher needs a short delay before it detects changes.
  await new Promise((resolve) => setTimeout(resolve, 500));
  const again = waitForRun();
  appendFileSync(file, "\n");
  await again;
}
await vitest.close();
if (tables.length !== 3 || new Set(tables).size !== 1) {
  console.error(tables.join("\n"));
  process.exit(1);
}
process.exit(0);
