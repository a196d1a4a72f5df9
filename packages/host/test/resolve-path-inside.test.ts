import { mkdir, mkdtemp, realpath, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { resolvePathInside } from "../src/index.ts";

let root = "";
let outside = "";
beforeAll(async () => {
  root = await mkdtemp(join(await realpath(tmpdir()), "place-"));
  outside = await mkdtemp(join(await realpath(tmpdir()), "elsewhere-"));
  await mkdir(join(root, "src", "deep"), { recursive: true });
  await symlink(outside, join(root, "out"));
  await symlink("src/deep", join(root, "in"));
  await symlink(join(outside, "not-there"), join(root, "dangling"));
  await symlink("circle", join(root, "circle"));
});
afterAll(async () => {
  await rm(root, { recursive: true });
  await rm(outside, { recursive: true });
});

test("placeInside resolves a path through links, also for a file that does not exist yet", async () => {
  const places = ["src", "src/new/file", "in/x", "./src//deep/", "src/../src", ".", ""].map((path) =>
    resolvePathInside(root, path),
  );
  expect(await Promise.all(places)).toEqual(["src", "src/new/file", "src/deep/x", "src/deep", "src", "", ""]);
  expect(await resolvePathInside(root, join(root, "in"))).toBe("src/deep");
});

test("placeInside has no result for a path that leaves the root, loops, or is ambiguous", async () => {
  // After a link, `..` is the parent of its target, which differs from the text of the path.
  const paths = [
    "..",
    "../x",
    "/etc",
    `${root}-2`,
    "out",
    "out/x",
    "dangling",
    "circle",
    "in/../../x",
    "in/../x",
    "out/../src",
    "a\0b",
  ];
  expect(await Promise.all(paths.map((path) => resolvePathInside(root, path)))).toEqual(paths.map(() => undefined));
  expect(await resolvePathInside(join(root, "not-there"), "x")).toBe(undefined);
});
