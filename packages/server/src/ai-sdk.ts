/** AI SDK UI message stream. */
export {};
