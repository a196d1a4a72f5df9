import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { sampledTests } from "../src/run-tests.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));

test("every test file that npm test runs partly or not at all is run completely by the gates", () => {
  const says = new RegExp(`env\\["${"STATEWRIGHT"}_WHOLE"\\]`);
  const observed = ["packages", "apps"].flatMap((parent) =>
    readdirSync(join(root, parent)).flatMap((name) => testFiles(`${parent}/${name}/test`)),
  );
  const shared = observed.filter(
    (file) => file.endsWith(".whole.test.ts") || says.test(readFileSync(join(root, file), "utf8")),
  );
  const listed = Object.entries(sampledTests).flatMap(([folder, files]) => files.map((file) => `${folder}/${file}`));
  expect(shared.toSorted()).toEqual(listed.toSorted());
});

function testFiles(folder: string): readonly string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".test.ts"))
    .map((file) => `${folder}/${file.replaceAll("\\", "/")}`);
}
