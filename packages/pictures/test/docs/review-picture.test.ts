import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { readPicture } from "../support/read-picture.ts";

test("the program of the README prints a picture that marks untested edges as bad", async () => {
  const program = fileURLToPath(new URL("review-picture.ts", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [program]);
  const bad = readPicture(stdout.trim()).edges.filter(({ classes }) => classes.includes("bad"));
  expect(bad.map(({ id }) => id)).toEqual(["collect -> __end__", "judge -> collect", "judge -> __end__"]);
});
