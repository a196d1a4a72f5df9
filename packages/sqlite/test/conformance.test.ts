import { storeConformance, wordConformance } from "@statewright/testing/conformance";
import { describe, test } from "vitest";
import { driverNames } from "../src/driver/choose-driver.ts";
import { openFile, openMemory } from "./support/stores.ts";

const tests = [...storeConformance, ...wordConformance];

describe.each(driverNames)("a store in a file, with %s [PK15]", (driver) => {
  for (const { name, run } of tests) test(name, () => run(() => openFile({ durability: "normal", driver })));
});

describe.each(driverNames)("a private store in memory, with %s [PK15]", (driver) => {
  for (const { name, run } of tests.filter(({ shared }) => !shared))
    test(name, () => run(() => openMemory({ driver })));
});
