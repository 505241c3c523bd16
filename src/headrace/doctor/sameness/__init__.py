"""Do two loaders, or one under two settings, deliver the same data? Walks, passports, a pure comparison."""
