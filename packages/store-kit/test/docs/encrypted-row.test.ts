import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

test("the program of the store-kit README reads back the value that it encrypted [PK14]", async () => {
  const program = fileURLToPath(new URL("encrypted-row.ts", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [program]);
  expect(stdout.split("\n")).toEqual(["42", expect.stringMatching(/^\d+$/), ""]);
});
