/** Conformance suites: what every implementation of a contract must do, as data for any test runner. */
// biome-ignore lint/performance/noBarrelFile: the entry of a package
export { type CacheTest, cacheConformance } from "./cache.ts";
export { fill as fillThread, portrait as portraitOf } from "./portrait.ts";
export { storeConformance } from "./store.ts";
export type { StoreTest, StoreUnderTest } from "./store-test.ts";
