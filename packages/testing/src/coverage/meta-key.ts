/** The key under which a test's meta holds what its runs came to. */
export const metaKey = "statewright";
