/** LangGraph SDK protocol. */
export {};
