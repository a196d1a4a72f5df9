/** Key of the coverage data in the meta of a vitest test. */
export const metaKey = "statewright";
