"""Operations whose nodes all do the same, as functions of whole tensors."""
