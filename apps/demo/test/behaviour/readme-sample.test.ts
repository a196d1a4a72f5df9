import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createScratchFolder, play } from "../support/demo.ts";

const repository = join(import.meta.dirname, "../../../..");

/** Replaces numbers, sizes and the random part of keys, which differ between runs and between commits. */
function maskNumbers(line: string): string {
  return line
    .trim()
    .replace(/audit\/[0-9a-z]{12}\//g, "audit/<random>/")
    .replace(/[\d.,]+ (B|KB|MB)\b/g, "<size>")
    .replace(/[\d.,]+ (ms|s)\b/g, "<time>")
    .replace(/\d[\d.,]*s?\b/g, "<number>")
    .replace(/ +/g, " ");
}

/** Splits output at the titles of its acts, `1  Run an agent` and so on. */
function splitActs(text: string): readonly string[] {
  return text.split(/^ *(?=\d {2}[A-Z])/m);
}

test("each line of the demo sample in the README is printed in that act of a run on this repository [FX22]", async () => {
  const readme = readFileSync(join(repository, "README.md"), "utf8");
  const section = /^## Run the demo$[\s\S]*?^( {4}1 {2}[\s\S]*?)^\(Lines/m.exec(readme)?.[1] ?? "";
  const sample = splitActs(section);
  const played = await play(createScratchFolder(), [repository]);
  expect(played.code, played.err).toBe(0);
  const acts = splitActs(played.out);
  expect(sample.slice(1).map((act) => act.split("\n")[0])).toEqual(acts.slice(1).map((act) => act.split("\n")[0]));
  for (const [index, act] of sample.entries()) {
    const printed = (acts[index] ?? "").split("\n").map(maskNumbers);
    const lines = act.split("\n").filter((line) => line.trim() !== "");
    for (const line of lines) expect(printed, `act ${index}: ${line}`).toContain(maskNumbers(line));
  }
});
