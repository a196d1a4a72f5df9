/** Conformance suites: what every implementation of a contract must do, as data for any test runner. */
// biome-ignore lint/performance/noBarrelFile: the entry of a package, which will have more suites
export { type StoreTest, type StoreUnderTest, storeConformance } from "./store.ts";
