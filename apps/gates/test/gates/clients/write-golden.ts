/** Writes the golden files of the UI message stream: tapes of the server with the lines that the client has received. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("../../../../../packages/server/test/golden/ai-sdk/", import.meta.url));

/**
 * Writes a golden file from the tapes of a server and the streams of a client that was satisfied. A file that exists is
 * kept, unless STATEWRIGHT_GOLDEN is `write`.
 */
export function writeGolden(name: string, tapeFile: string, streams: readonly (readonly string[])[]): void {
  const file = `${folder}${name}.json`;
  if (existsSync(file) && process.env["STATEWRIGHT_GOLDEN"] !== "write") return;
  const tapes = readFileSync(tapeFile, "utf8").trim().split("\n");
  const whole = streams.filter((lines) => lines.at(-1) === "[DONE]");
  const golden = tapes.map((tape, index) => ({ tape: JSON.parse(tape) as unknown, lines: whole[index] }));
  if (golden.some(({ lines }) => lines === undefined) || golden.length !== whole.length)
    throw new Error(`golden file ${name}: expected a tape for each of ${whole.length} streams, got ${tapes.length}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, `${JSON.stringify(removeChance(golden), null, 2)}\n`);
}

/** Replaces ids of runs, branches and messages of the page, and times, by equal ones for equal runs. */
function removeChance(golden: unknown): unknown {
  let text = JSON.stringify(golden);
  const userIds = [...text.matchAll(/"id":"([A-Za-z0-9]{16})","content"/g)].map((match) => match[1] ?? "");
  const runs = [...text.matchAll(/run_[0-9a-z]{20}/g)].map(([id]) => id);
  const branches = [...text.matchAll(/fork_[0-9a-z]{20}|edit_[0-9a-f]{16}/g)].map(([id]) => id);
  for (const [prefix, ids] of Object.entries({ user: userIds, run: runs, branch: branches }))
    for (const [index, id] of [...new Set(ids)].entries()) text = text.replaceAll(id, `${prefix}_${index + 1}`);
  const times = /(at|durationMs|elapsedMs|createdAt|endedAt|answeredAt|updatedAt)(\\?"):[0-9.e-]+/g;
  return JSON.parse(text.replaceAll(times, "$1$2:0"));
}
