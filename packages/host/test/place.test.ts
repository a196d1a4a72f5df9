import { mkdir, mkdtemp, realpath, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { placeInside } from "../src/index.ts";

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

test("a path is told by where it really leads, also one that names nothing yet", async () => {
  const places = ["src", "src/new/file", "in/x", "./src//deep/", "src/../src", ".", ""].map((path) =>
    placeInside(root, path),
  );
  expect(await Promise.all(places)).toEqual(["src", "src/new/file", "src/deep/x", "src/deep", "src", "", ""]);
  expect(await placeInside(root, join(root, "in"))).toBe("src/deep");
});

test("what leads out of the root, in a circle, or to two places at once, has no place", async () => {
  // After the link, `..` is the folder above where it leads: the text says another.
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
  expect(await Promise.all(paths.map((path) => placeInside(root, path)))).toEqual(paths.map(() => undefined));
  expect(await placeInside(join(root, "not-there"), "x")).toBe(undefined);
});
