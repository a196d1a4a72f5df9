/** Programs of the page about mounting a server. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

function read(path: string): string {
  return readFileSync(fileURLToPath(new URL(`../../../${path}`, import.meta.url)), "utf8");
}

/** Reads a program without the notes about packages outside of the workspace. */
function readProgram(name: string): string {
  return read(`apps/gates/test/gates/clients/mounts/${name}.mjs`).replaceAll(/^\/\/ @boundaries-ignore .*\n/gm, "");
}

test("the page about mounts shows the programs that the gate of clients starts, each in at most ten lines [V8]", () => {
  const page = read("docs/mounting-a-server.md");
  const programs = [...page.matchAll(/Tested as `mounts\/([a-z0-9-]+)\.mjs`.*?```js\n(.*?)```/gs)];
  expect(programs.map(([, name]) => name)).toEqual([
    ...["hono", "express", "fastify", "h3", "nitro", "nitropack", "next", "node-http"],
  ]);
  for (const [, name = "", code = ""] of programs) {
    expect([name, code]).toEqual([name, readProgram(name)]);
    expect([name, code.trim().split("\n").length <= 10]).toEqual([name, true]);
  }
});
