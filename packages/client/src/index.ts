/** Typed client of a Statewright server. */
export {};
