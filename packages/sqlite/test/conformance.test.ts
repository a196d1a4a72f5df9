import { storeConformance } from "@statewright/testing/conformance";
import { describe, test } from "vitest";
import { openFile, openMemory } from "./support/stores.ts";

describe("a store in a file", () => {
  for (const { name, run } of storeConformance) test(name, () => run(() => openFile()));
});

describe("a store in memory, which nobody else can open", () => {
  for (const { name, run } of storeConformance.filter(({ shared }) => !shared)) test(name, () => run(openMemory));
});
