/** Core runs on every JavaScript engine: its sources use no Node.js module and no Node.js global. */
import { readdirSync, readFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";

const source = new URL("../../src/", import.meta.url);

test("no shipped source file imports a Node.js module or uses a Node.js global", () => {
  const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  const wrong = files.filter((name) => {
    const code = readFileSync(new URL(name, source), "utf8").replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");
    return /(from|import\() ?"node:|\bprocess\.|\bBuffer\.|\brequire\(|\b__dirname\b/.test(code);
  });
  expect(wrong).toEqual([]);
});

test("core runs, waits, resumes and forks in a platform without Buffer and Node.js modules", async () => {
  const worker = new Worker(new URL("../support/without-node.mjs", import.meta.url), {
    execArgv: ["--no-warnings"],
    env: { ...process.env, NODE_OPTIONS: "" },
  });
  try {
    const observed = await new Promise((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
      worker.once("exit", (code) => reject(new Error(`it ended with exit code ${code}`)));
    });
    expect(observed).toEqual({
      left: [],
      asked: [],
      first: "waiting",
      notes: ["yes"],
      said: [{ type: "text", text: "3" }],
      again: "waiting",
    });
  } finally {
    await worker.terminate();
  }
});
